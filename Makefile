# Two commands: `make run` ends with a verdict about this disk, `make test` runs the tests. Both install what is
# missing with apt-get (as root, or with sudo). `make deps` installs for these and for `make test-deep`.

.PHONY: run deps test test-here test-guests test-crates test-deep test-deep-runs test-deep-guests test-deep-computed audit oldest-rust notices release tools test-all test-statistics test-data recipes test-kernel test-vm test-sim test-fleet build static deb lintian container atlas atlas-store atlas-digest lint screenshots fuzz sanitize bench schema traces book install-build install-run install-test install-deep

# What the default comparison needs, and what the tests need in addition.
BUILD_PACKAGES = gcc libc6-dev
RUN_PACKAGES = coreutils e2fsprogs xfsprogs btrfs-progs mount tar util-linux
TEST_PACKAGES = bindfs btrfs-compsize chromium erofs-utils f2fs-tools fio fonts-dejavu-core git gocryptfs librsvg2-bin openssh-client openssh-server \
  procps strace xz-utils zstd $(NODE_PACKAGES) $(VM_PACKAGES)
DEEP_PACKAGES = bc binutils bison bonnie++ curl duperemove encfs flex fsmark libreoffice-calc-nogui linux-perf make mariadb-server mergerfs nanoc nilfs-tools ntfs-3g \
  pacman-package-manager postgresql python3 python3-jsonschema python3-pandas redis-server redis-tools rocksdb-tools slurm-client slurmctld slurmd sqlite3 sshfs sysbench zfs-fuse
# Node.js from elsewhere has its own npm, with which that of Debian cannot be installed.
NODE_PACKAGES = $(shell command -v npm >/dev/null 2>&1 || echo nodejs npm)
KERNEL_PACKAGES = linux-source
VM_PACKAGES = qemu-system-x86 qemu-utils mmdebstrap squashfs-tools kmod cpio tar xz-utils util-linux

# Compares ext4, xfs, btrfs, btrfs lzo and btrfs zstd:1 on an image in this folder, in a few minutes.
run: install-run build
	$(AS_ROOT) ./target/release/pickfs run

build: install-build
	cargo build --release --locked

deps: install-build install-run install-test install-deep

# What a contributor needs, in ten minutes on two processors, three of them compiling. As root it uses loop devices, guests,
# and images in temporary folders; what cannot run says why.
test: install-run install-test install-build
	cargo test --locked --no-run
	$(MAKE) --jobs 3 test-here test-guests test-crates

# Cargo would take the jobs of make for its own. Two tests may wait for another one's run, while a third computes.
test-here:
	MAKEFLAGS= cargo test --locked --test end-to-end -- --nocapture --test-threads=3 --skip deep:: --skip guests::

# They compute while real runs wait for each other and for disks.
test-crates:
	MAKEFLAGS= nice cargo test --locked --workspace --lib --bins -- --nocapture
	MAKEFLAGS= nice cargo test --locked --workspace --doc

test-guests:
	MAKEFLAGS= crates/pickfs/tests/own-turn cargo test --locked --test end-to-end -- --nocapture --skip deep:: guests::

# What CI runs in addition: more guests and simulations, servers, kills, and the statistics against simulated truth. Real runs wait
# for each other, and guests and what computes use the processors that they leave idle.
test-deep: deps
	cargo test --locked --test end-to-end --no-run
	$(MAKE) --jobs 3 test-deep-runs test-deep-guests test-deep-computed

# A run that was killed leaves the machine's settings changed until it is cleaned, which a concurrent run would take for the usual ones:
# kills have the machine's settings to themselves.
test-deep-runs:
	MAKEFLAGS= cargo test --locked --test end-to-end -- --nocapture --skip deep::guest --skip deep::killed $(DEEP_COMPUTED:%=--skip %) deep::
	MAKEFLAGS= cargo test --locked --test end-to-end -- --nocapture --test-threads=1 deep::killed

test-deep-guests:
	MAKEFLAGS= crates/pickfs/tests/own-turn cargo test --locked --test end-to-end -- --nocapture --test-threads=1 deep::guest

test-deep-computed:
	MAKEFLAGS= nice cargo test --locked --test end-to-end -- --nocapture --test-threads=1 $(DEEP_COMPUTED)

DEEP_COMPUTED = $(addprefix deep::,$(addsuffix ::,atlas constants equals forecasts foreign_noise fuzz gate recipes recomputed savings statistics verdicts))

# The simulations behind docs/statistics.md, as often repeated as its tables say, and real runs of equals; half an hour.
test-statistics: deps
	PICKFS_FULL=1 cargo test --release --locked --test end-to-end -- statistics:: savings:: constants:: equals:: verdicts:: gate:: forecasts:: --nocapture --test-threads=1
	PICKFS_FULL=1 cargo test --release --locked --package pickfs-stats --lib
	cargo test --release --locked --test end-to-end -- same:: slowdown:: stream:: --ignored --nocapture --test-threads=1

# Real trees against their twins and their predictions on btrfs: the tables of docs/data.md and docs/compression.md.
test-data: deps
	cargo test --release --locked --test end-to-end -- twins:: predict:: --ignored --nocapture --test-threads=1

# Chooses the recipes of generated content anew and measures them: a script, whose result is committed.
recipes: install-build
	PICKFS_RECIPES=$(CURDIR)/crates/trees/src/content/recipes.csv cargo test --release --locked --test end-to-end make_recipes -- --ignored

# A real kernel, tinyconfig, unpacked, compiled and removed on ext4 in memory: minutes, and 6 GiB of memory.
test-kernel: deps
	@$(call install,$(KERNEL_PACKAGES))
	cargo test --release --locked --test end-to-end -- unstable_system:: --ignored --nocapture --test-threads=1

# Guests of every release of Debian, and what else takes long in guests: fetches some hundred MiB.
test-vm: deps
	cargo test --release --locked --test end-to-end -- guest --ignored --nocapture --test-threads=1

# A hundred million random requests to the kinds of simulated disks, file systems in memory here against simulated ones, and causes
# of differences that were planted or published.
test-sim: deps
	cargo test --release --locked --package pickfs-disks --package pickfs-host --lib -- --ignored --nocapture
	cargo test --release --locked --test end-to-end -- fidelity:: atlas:: known_effects:: planted_causes:: tunings:: --ignored --nocapture

# More runs for atlas/, until it has all that packaging/atlas names: hours. Then the store and the site of it, below target/atlas.
atlas: deps build
	packaging/atlas target/release/pickfs atlas

atlas-store: deps build
	rm -rf target/atlas && mkdir -p target/atlas/runs
	for journal in atlas/*.jsonl.xz; do xz --decompress --stdout "$$journal" >"target/atlas/runs/$$(basename "$$journal" .xz)" || exit 1; done
	target/release/pickfs push target/atlas/store target/atlas/runs
	target/release/pickfs site target/atlas/store target/atlas/site --title 'Which file system? The atlas of simulated disks'

# What `pickfs for` says of the atlas, anew from its journals; then the table of docs/for.md, which the second run compares.
atlas-digest: install-build
	PICKFS_WRITE_DIGEST=1 cargo test --locked --test end-to-end -- the_digest_is_what_the_journals_say
	PICKFS_WRITE_DIGEST=1 cargo test --locked -p pickfs --lib -- the_page_lists_them || cargo test --locked -p pickfs --lib -- the_page_lists_them

# Forty runs over four servers of ssh with twenty kills, a link that is cut for five minutes, and a hundred cells over two machines
# of Slurm, with kills, against one machine: hours.
test-fleet: deps
	cargo test --release --locked --test end-to-end -- fleet:: slurm:: --ignored --nocapture --test-threads=1

# A program that needs no library, for any amd64 Linux: target/x86_64-unknown-linux-gnu/release/pickfs.
static: install-build
	RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --target $(STATIC)

# target/deb/pickfs_VERSION_amd64.deb, with man pages and completions.
deb: static
	@$(call install,dpkg-dev gzip)
	packaging/deb target/$(STATIC)/release/pickfs target/deb

# The packages, a software bill of materials, the notices of all libraries, and their checksums: target/release-files.
release: install-build tools
	@$(call install,dpkg-dev gzip)
	PATH="$(TOOLS)/bin:$$PATH" packaging/release target/release-files

# What Cargo.lock names against the RustSec database, and deny.toml's rules on licences and sources. Where the database cannot be
# reached, the rules alone, with a failure that says so.
audit: install-build tools
	PATH="$(TOOLS)/bin:$$PATH" cargo deny --locked check bans licenses sources
	PATH="$(TOOLS)/bin:$$PATH" cargo deny --locked check advisories

# The oldest Rust that Cargo.toml names compiles everything.
oldest-rust: install-build
	packaging/oldest-rust target/oldest-rust

# The licences of the libraries that the program holds, for the packages.
notices: install-build tools
	PATH="$(TOOLS)/bin:$$PATH" packaging/notices >packaging/notices.txt

# The manual as one site with a search, its links checked: target/book/site/index.html.
book: install-build
	cargo install --quiet --locked --root $(TOOLS) mdbook@0.4.52 --no-default-features --features search
	PATH="$(TOOLS)/bin:$$PATH" packaging/book target/book

TOOLS = $(CURDIR)/target/tools
tools:
	cargo install --quiet --locked --root $(TOOLS) cargo-about@0.9.3 --features cli
	cargo install --quiet --locked --root $(TOOLS) cargo-cyclonedx@0.5.9 cargo-deny@0.20.2

# No error and no warning from Debian's own checker of packages.
lintian: deb
	@$(call install,lintian)
	lintian --allow-root --info --fail-on error,warning target/deb/pickfs_*_amd64.deb

# An image with pickfs and the tools of its default run: packaging/Containerfile says how to use it.
container:
	$(CONTAINER) build --file packaging/Containerfile --tag pickfs .

STATIC = x86_64-unknown-linux-gnu
CONTAINER = $(shell command -v podman || echo docker)

lint: install-build
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings

# Ten minutes of nonsense for each reader of what others wrote: with a nightly compiler and cargo-fuzz guided by coverage,
# else damaged at random. Seeds are the fixtures of the tests, the examples, and fuzz/seeds.
FUZZED = calibration devices disk-model import job journal plan profile protocol recording rings strace trace trace-calls
fuzz_seeds_calibration = fuzz/seeds/calibration
fuzz_seeds_devices = fuzz/seeds/devices
fuzz_seeds_disk-model = crates/disks/src/models
fuzz_seeds_import = fuzz/seeds/import fixtures/import
fuzz_seeds_job = fuzz/seeds/job
fuzz_seeds_journal = fuzz/seeds/journal fixtures/journals
fuzz_seeds_plan = examples
fuzz_seeds_profile = crates/trees/src/profile/builtin
fuzz_seeds_protocol = fuzz/seeds/protocol fixtures/journals
fuzz_seeds_recording = fuzz/seeds/recording
fuzz_seeds_rings = fuzz/seeds/rings
fuzz_seeds_strace = fuzz/seeds/strace
fuzz_seeds_trace = fuzz/seeds/trace
fuzz_seeds_trace-calls = fuzz/seeds/trace-calls
fuzz: install-build
	if cargo +nightly fuzz --version >/dev/null 2>&1; then $(foreach name,$(FUZZED),mkdir -p fuzz/corpus/$(name) && \
	  cargo +nightly fuzz run $(name) fuzz/corpus/$(name) $(fuzz_seeds_$(name)) -- -max_total_time=600 &&) true; \
	else PICKFS_FUZZ_SECONDS=600 cargo test --release --locked --test end-to-end -- fuzz:: --nocapture; fi

# The C files with all warnings as errors, played to by programs of their own: wrong addresses and undefined behaviour end these. The
# drivers of the guest (simdisk.c, compression.c) need a kernel's headers, and are compiled where guests are built. A minute.
SANITIZED = gcc -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all
sanitize: install-build
	rm -rf target/sanitize && mkdir -p target/sanitize/files
	$(SANITIZED) -std=gnu89 -Icrates/system/src/sys/disk_model -o target/sanitize/models crates/pickfs/tests/sanitize/models.c $(patsubst %,crates/system/src/sys/disk_model/%.c,model ftl zbc)
	target/sanitize/models 0 1500
	if [ "$$(uname -m)" = x86_64 ]; then gcc -O2 -Wall -Wextra -Werror -fsyntax-only -std=gnu11 -D_GNU_SOURCE -ffreestanding crates/trace/src/record/preload.c && \
	  $(SANITIZED) -Wno-unused-result -std=gnu11 -D_GNU_SOURCE -mno-red-zone -ftls-model=initial-exec -pthread \
	    -o target/sanitize/preload crates/pickfs/tests/sanitize/preload.c && target/sanitize/preload target/sanitize/files 1 300; fi

# All of it, for a machine that has hours: simulations, guests, kernels, two hundred killed runs.
test-all: test test-deep test-statistics test-data test-kernel test-vm test-sim test-fleet
	cargo test --release --locked --test end-to-end -- bundles:: pasted:: purposes:: sweep:: store:: --ignored --nocapture

# The page of a report as it looks in Chromium, into docs/page, and a run on a terminal, into docs: to be looked at after each
# change of them. The run is best made on a machine with nothing else to do.
screenshots: deps build
	@$(call install,pngquant python3-pyte)
	packaging/moving-picture 100x30 docs/run target/release/pickfs run --memory --source /usr/include/linux --fs ext4,xfs,btrfs --rounds 9
	PICKFS_SCREENSHOTS=$(CURDIR)/docs/page cargo test --locked --test end-to-end screenshots -- --ignored
	pngquant --force --ext .png --quality 80-98 --speed 1 --strip docs/page/*.png

# The files in schema/, from the types that they describe.
schema: install-build
	PICKFS_WRITE_SCHEMA=1 cargo test --lib --locked -q -- exchange:: audit::rules:: help_and_page the_reference_is the_page_has_every_option

# The recordings that come with pickfs, anew from real programs: on an idle machine, as root.
TRACE_PACKAGES = git procmail notmuch exiv2 libjpeg-turbo-progs postgresql sqlite3 umoci mmdebstrap linux-libc-dev $(NODE_PACKAGES)
traces: install-build build
	@$(call install,$(TRACE_PACKAGES))
	packaging/traces target/release/pickfs crates/trace/src/shipped

# Ratios against a plain clock, and limits of time and memory: never part of the tests.
bench: deps build
	cargo bench --locked

AS_ROOT = $(shell test "$$(id -u)" = 0 || echo sudo)
missing = $(shell for name in $(1); do dpkg-query -W -f '$${Status}' $$name 2>/dev/null | grep -q 'ok installed' || echo $$name; done)
define install
$(if $(strip $(call missing,$(1))),$(AS_ROOT) apt-get update -qq && $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(call missing,$(1)))
endef

install-run:
	@$(call install,$(RUN_PACKAGES))

install-test:
	@$(call install,$(TEST_PACKAGES))

install-deep:
	@$(call install,$(DEEP_PACKAGES))

# Debian 12's own cargo is too old; its security archive has a newer one under another name.
install-build:
	@$(call install,$(BUILD_PACKAGES))
	@cargo --version >/dev/null 2>&1 || { $(AS_ROOT) apt-get update -qq; \
	  $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends cargo-web || \
	  $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends cargo; }
