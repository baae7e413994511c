//! The libraries, and programs in C that use them.

use std::path::{Path, PathBuf};
use std::process::Command;

use rondel_testkit::{Finished, finish};

/// The folder of this crate.
pub(crate) const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the library with this ending, which Cargo has built with this test: beside it.
pub(crate) fn library(ending: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librondel_ffi") && path.extension().is_some_and(|own| own == ending)
    };
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_ours);
    // With a hash in its name, an earlier one may be there, too.
    all.max_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap())
        .expect("the library is not beside the test")
}

/// Runs a compiler or another tool, which must succeed without a warning.
#[track_caller]
pub(crate) fn tool(program: &str, arguments: &[&str]) -> Finished {
    let finished = finish(Command::new(program).args(arguments), b"");
    assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""), "{program} {arguments:?}");
    finished
}

/// Compiles a program with a library, and runs it.
#[track_caller]
pub(crate) fn run(compiler: &str, standard: &str, source: &str, library: &Path, program: &str) -> Finished {
    let include = format!("-I{HERE}/include");
    let folder = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    let library = library.to_str().unwrap();
    let mut arguments =
        vec![standard, "-pedantic", "-Wall", "-Wextra", "-Werror", &include, source, "-o", program];
    arguments.extend([library, folder.as_str(), "-lpthread", "-ldl", "-lm"]);
    tool(compiler, &arguments);
    finish(&mut Command::new(program), b"")
}
