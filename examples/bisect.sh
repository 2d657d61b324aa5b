#!/bin/sh
# Which commit of Linux made a file system slower? A step of `git bisect run`, in a kernel's source:
#
#   git bisect start BAD GOOD
#   git bisect run /path/to/bisect.sh ~/bisect
#
# The folder ~/bisect is made once, as docs/sim.md shows: a guest of Debian's in guest/, and a plan with `executor = "sim"` that names it.
# The first run, with the good kernel checked out, makes good.jsonl. Each step takes the kernel that is to be judged into the guest,
# with the simulated disk's driver compiled for it, and does the plan. Times have no noise, so one run of each kernel is enough.
#
# It ends with 0 where the commit is good, with 1 where a whole job is slower by clearly more than THRESHOLD, and with 125 (git then
# takes another commit) where the kernel does not compile or boot, or the rounds leave it open; with 128 on any other failure.

set -eu
folder=$1
: "${THRESHOLD:=0.5%}" "${MODULES:=squashfs overlay ext4}"
# What fails unforeseen says nothing of the commit, and ends the bisection.
verdict=128
trap 'exit $verdict' EXIT
skip() { echo "bisect: $1"; verdict=125; exit; }

make -j"$(nproc)" bzImage modules >"$folder/build.log" 2>&1 || skip "this commit does not compile: $folder/build.log"
release=$(make -s kernelrelease)
rm -rf "$folder/modules"
make INSTALL_MOD_PATH="$folder/modules" modules_install >>"$folder/build.log" 2>&1 || skip "no modules: $folder/build.log"

# The kernel, and the modules that it needs for its root and for what the plan measures; what is built in needs none.
rm -rf "$folder/guest/modules" "$folder/guest/modules.order" "$folder/guest/vmlinux"
mkdir "$folder/guest/modules"
cp arch/x86/boot/bzImage "$folder/guest/vmlinuz"
[ ! -f vmlinux ] || cp vmlinux "$folder/guest/vmlinux"
for module in $MODULES; do
    modprobe -d "$folder/modules" -S "$release" --show-depends "$module"
done | while read -r how file _; do
    name=${file##*/}
    if [ "$how" = insmod ] && [ ! -e "$folder/guest/modules/$name" ]; then
        cp "$file" "$folder/guest/modules/"
        echo "$name" >>"$folder/guest/modules.order"
    fi
done

# The simulated disk's driver, for this kernel.
rm -rf "$folder/driver"
pickfs disk driver "$folder/driver"
make M="$folder/driver" modules >>"$folder/build.log" 2>&1 || skip "the driver does not compile: $folder/build.log"
cp "$folder/driver/simdisk.ko" "$folder/guest/"

if [ ! -e "$folder/good.jsonl" ]; then
    pickfs run "$folder/plan.toml" --journal "$folder/good.jsonl"
    verdict=0
    exit
fi
rm -f "$folder/now.jsonl"
pickfs run "$folder/plan.toml" --journal "$folder/now.jsonl" || skip "the plan cannot be done on this kernel"
code=0
pickfs compare "$folder/good.jsonl" "$folder/now.jsonl" --threshold "$THRESHOLD" || code=$?
case $code in
    0) verdict=0 ;;
    3) verdict=1 ;;
    *) skip "the rounds leave it open" ;;
esac
