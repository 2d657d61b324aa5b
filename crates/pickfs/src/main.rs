//! The command line; everything it can do is one file in `cli/`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    pickfs::cli::main()
}
