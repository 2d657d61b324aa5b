//! Compiles the disk models, which are C because a guest's kernel has them too.

const MODEL: &str = "src/sys/disk_model";

fn main() {
    for file in ["model.c", "model.h", "ftl.c", "ftl.h", "zbc.c", "zbc.h"] {
        println!("cargo::rerun-if-changed={MODEL}/{file}");
    }
    // As old kernels are: C89 with GNU's additions.
    let mut build = cc::Build::new();
    build
        .files(["model.c", "ftl.c", "zbc.c"].map(|file| format!("{MODEL}/{file}")))
        .std("gnu89")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true);
    build.compile("pickfs_disk_model");
}
