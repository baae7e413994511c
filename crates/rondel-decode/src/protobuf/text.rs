//! Message types from `.proto` files, compiled by protox.

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::Descriptors;
use crate::schema::SchemaError;

/// Files provided by the caller, by name.
struct Files<F>(F);

impl<F: Fn(&str) -> Option<String> + Send + Sync> FileResolver for Files<F> {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match (self.0)(name) {
            Some(text) => File::from_source(name, &text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

impl Descriptors {
    /// Compiles `.proto` files and their imports. `file` returns the text of a file by the name in its import; those of
    /// Google are built in. Names have `/` between their parts.
    ///
    /// # Errors
    /// The first error in the files, with file and line, or a file that is missing.
    pub fn from_proto<N: AsRef<str>>(
        names: &[N],
        file: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Descriptors, SchemaError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(Files(file));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        for name in names {
            compiler.open_file(name.as_ref()).map_err(|error| SchemaError::new(message(&error)))?;
        }
        Descriptors::from_bytes(&compiler.encode_file_descriptor_set())
    }
}

/// Returns an error in one line, with file and line.
fn message(error: &protox::Error) -> String {
    // The display form has no position.
    let text = format!("{error:?}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
    match error.file() {
        // At the end of a file there is no position either.
        Some(file) if !text.contains(file) => format!("{file}: {text}"),
        _ => text,
    }
}
