//! Compiles the disk models, which are C because a guest's kernel has them too.

fn main() {
    for file in ["src/executor/sim/model.c", "src/executor/sim/model.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    // As old kernels are: C89 with GNU's additions.
    let mut build = cc::Build::new();
    build.file("src/executor/sim/model.c").std("gnu89").opt_level(2).warnings(true).extra_warnings(true);
    build.compile("pickfs_disk_model");
}
