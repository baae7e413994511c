//! Notes the commit that is built, for `rondel --version`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=RONDEL_COMMIT");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    let git = || {
        let output = Command::new("git").args(["rev-parse", "--short=9", "HEAD"]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = std::env::var("RONDEL_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(git);
    println!("cargo:rustc-env=RONDEL_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}
