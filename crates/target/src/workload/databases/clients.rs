//! Numbers of clients that work at once, a phase for each of them.

use pickfs_core::plan::Objection;

/// Name of the phase with this number of clients.
pub(crate) fn name_of(clients: u64) -> String {
    format!("clients-{clients}")
}

/// The objection unless each number is there once and none is 0; `such_as` is an example of the
/// setting.
pub(crate) fn to_clients(given: &[u64], such_as: &str) -> Option<Objection> {
    let mut unique = given.to_vec();
    unique.sort();
    unique.dedup();
    if unique.len() < given.len() || unique.first() == Some(&0) || given.is_empty() {
        let message = format!("{given:?} are not numbers of clients, each for a phase of its own");
        return Some(Objection::new(
            "clients",
            message,
            &format!("give numbers from 1 on, each once, such as {such_as}"),
        ));
    }
    None
}
