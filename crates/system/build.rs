//! Compiles the disk models, which are C because a guest's kernel has them too.

use std::path::Path;

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
    let header = std::fs::read_to_string(format!("{MODEL}/model.h")).expect("model.h");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names a folder");
    std::fs::write(Path::new(&folder).join("parts.rs"), parts(&header)).expect("written");
}

/// `enum sim_part` as a call of Rust's macro `parts!`, so that its order stands once.
fn parts(header: &str) -> String {
    let (_, list) = header.split_once("enum sim_part {\n").expect("enum sim_part");
    let (list, _) = list.split_once("\tSIM_PARTS\n").expect("its end");
    let part = |line: &str| {
        let (name, about) = line.trim().strip_prefix("SIM_PART_")?.split_once(", /* ")?;
        let (first, rest) = name.split_at_checked(1)?;
        Some(format!("    /// {}\n    {first}{},\n", about.strip_suffix(" */")?, rest.to_lowercase()))
    };
    let parts = list.lines().map(|line| part(line).unwrap_or_else(|| panic!("`{line}` is no part with its comment")));
    format!("parts! {{\n{}}}\n", parts.collect::<String>())
}
