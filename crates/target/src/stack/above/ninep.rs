//! 9P2000.L: the kernel's client, and diod as the server, by TCP over the loopback device.

use super::network::IP;
use super::*;

pub(crate) const NINEP: Above = Above {
    name: "9p",
    about: "a folder shared by 9P: the kernel's client and diod, by TCP on this machine",
    settings: &network::SETTINGS,
    needs: &[
        Need::Root,
        IP,
        Need::Program { name: "diod", package: "diod" },
        Need::Kernel { filesystem: "9p", hint: "load its module: `modprobe 9p`" },
    ],
    modules: &["9p", "9pnet_fd"],
    // No option of it prints its version; in a guest the host knows what it unpacked.
    versions: &[("diod", &["dpkg-query", "-W", "diod"])],
    kind: "9p",
    folders: &["9p"],
    stores: "9p",
    is_lowest: true,
    hides: &[CASE_FOLDING, CREATION_TIME, REFLINKS],
    make: |seat| {
        let server = ["diod", "-c", "/dev/null", "-n", "-l", &format!("127.0.0.1:{PORT}"), "-e", &seat.data()];
        let start = seat.server("diod", server);
        network::steps(seat).into_iter().chain([start]).collect()
    },
    mount: |seat| {
        let options = format!("trans=tcp,port={PORT},version=9p2000.L,access=any,uname=root,aname={}", seat.data());
        argv(["mount", "-t", "9p", "-o", &options, "127.0.0.1", &seat.at()])
    },
    facts: |_| vec![network::shown()],
    mismatches: |seat, _, served| network::mismatch(&seat.settings, served).into_iter().collect(),
    ..Above::SERVED
};

/// The one that the protocol has.
const PORT: u16 = 564;

#[cfg(test)]
mod tests {
    use super::super::example::sentences;

    #[test]
    fn the_server_shows_the_folder_that_the_client_asks_for() {
        let (data, at) = ("/run/pickfs-r/target/9p", "/run/pickfs-r/above");
        let options = format!("trans=tcp,port=564,version=9p2000.L,access=any,uname=root,aname={data}");
        assert_eq!(
            sentences("9p"),
            [
                "run ip link set lo up".to_string(),
                format!("run diod -c /dev/null -n -l 127.0.0.1:564 -e {data}; back: kill PICKFS_DAEMON=pickfsC"),
                format!("run mount -t 9p -o {options} 127.0.0.1 {at}; back: unmount {at}"),
            ]
        );
    }
}
