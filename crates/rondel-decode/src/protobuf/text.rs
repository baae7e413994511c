//! Message types from `.proto` files, by way of a compiler.

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::Descriptors;
use crate::schema::SchemaError;

/// Files that the caller hands out by name.
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
    /// Compiles the `.proto` file `name` and what it imports. `file` returns the text of a file by the name with
    /// which it is imported; those of Google need not be there.
    ///
    /// # Errors
    /// The first error in the files, or a file that is missing.
    pub fn from_proto(
        name: &str,
        file: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Descriptors, SchemaError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(Files(file));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(resolver);
        let compiled = compiler.include_imports(true).open_file(name);
        compiled.map_err(|error| match error.file() {
            Some(file) => SchemaError::new(error.to_string()).in_text(file),
            None => SchemaError::new(error.to_string()),
        })?;
        Descriptors::from_bytes(&compiler.encode_file_descriptor_set())
    }
}
