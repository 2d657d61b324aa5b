//! The command line; everything it can do is one file in `cli/`.

fn main() -> std::process::ExitCode {
    pickfs::cli::main()
}
