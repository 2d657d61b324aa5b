//! Compiles the library that is loaded into programs that are recorded: C, because it has the place
//! of the C library's own functions. Elsewhere than on x86-64 it is empty, and every call of a
//! recorded program stops.

use std::path::Path;

const PRELOAD: &str = "src/record/preload.c";

fn main() {
    println!("cargo::rerun-if-changed={PRELOAD}");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let library = Path::new(&folder).join("preload.so");
    let target = ["ARCH", "OS"].map(|part| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default());
    if target != ["x86_64", "linux"] {
        std::fs::write(&library, b"").expect("OUT_DIR can be written");
        return;
    }
    let mut command = cc::Build::new().opt_level(2).debug(false).get_compiler().to_command();
    command.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror=implicit-function-declaration",
        "-D_GNU_SOURCE",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-ffreestanding",
    ]);
    // It calls into its page without the compiler's knowledge, and threads' data must be there from
    // the start.
    command.args(["-mno-red-zone", "-fno-stack-protector", "-ftls-model=initial-exec", "-fvisibility=hidden"]);
    let status = command.arg(PRELOAD).arg("-o").arg(&library).status();
    assert!(status.is_ok_and(|status| status.success()), "the C compiler cannot make {PRELOAD} a shared object");
}
