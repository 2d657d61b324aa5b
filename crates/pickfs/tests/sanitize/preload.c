/*
 * Plays a program that is recorded: all that crates/trace/src/record/preload.c takes the place of is called in a folder of its own, with wrong
 * addresses too, and the rings are read as the recorder reads them. Nothing stops here, so each thread finds its ring accepted.
 * `make sanitize` compiles both so that wrong addresses and undefined behaviour end it: "preload FOLDER SEED COUNT".
 */
#include "../../../trace/src/record/preload.c"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define WRONG ((void *)16)

static uint64_t seeds[THREADS + 1];
static unsigned int most;

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "preload: %s\n", what);
	_Exit(1);
}

static struct ring *ring_of(unsigned int number)
{
	return (struct ring *)((char *)shared + PAGE_BYTES) + number;
}

/* What crates/system/src/sys/rings.rs demands of a ring. */
static void read_ring(struct ring *ring)
{
	while (ring->tail < ring->head) {
		const struct record *record = (const struct record *)(ring->bytes + ring->tail % RING_BYTES);
		uint64_t to_end = RING_BYTES - ring->tail % RING_BYTES;

		check(record->size && record->size % 8 == 0 && record->size <= to_end, "a record goes around the ring's end");
		check(record->size <= ring->head - ring->tail, "a record is longer than what was written");
		if (record->number == SKIP) {
			check(record->size == to_end, "the skipped part ends before the ring does");
		} else {
			check(record->size >= sizeof *record && record->size <= LARGEST, "a record has a wrong size");
			check(sizeof *record + record->text[0] + record->text[1] + record->sample <= record->size,
			      "texts are longer than their record");
			check(record->begin <= record->end && record->began < record->order, "a call ends before it begins");
		}
		ring->tail += record->size;
	}
}

static void share_memory(void)
{
	size_t bytes = PAGE_BYTES + RINGS * sizeof(struct ring);
	const long access = PROT_READ | PROT_WRITE;
	unsigned int i;

	check(*(const volatile uint8_t *)PAGE == code[0], "the page of the passing calls is missing");
	process = mmap(NULL, PAGE_BYTES, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, bytes, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(process != MAP_FAILED && shared != MAP_FAILED, "no memory");
	for (i = 0; i < RINGS; i++)
		ring_of(i)->accepted = 1;
}

static uint64_t next_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void names(const char *path, const char *other, char *buffer, size_t room)
{
	mkdir(path, 0700);
	symlink("a/target", other);
	readlink(other, buffer, room);
	chmod(path, 0755);
	access(path, R_OK);
	setxattr(path, "user.name", "value", 5, 0);
	getxattr(path, "user.name", buffer, room);
	listxattr(path, buffer, room);
	removexattr(path, "user.name");
	rmdir(path);
	unlink(other);
}

static void files(const char *path, char *buffer, size_t room, uint64_t number)
{
	struct stat found;
	int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644), other;

	write(file, buffer, number % room);
	pwrite(file, number % 3 ? buffer : WRONG, number % room, number % 5000);
	lseek(file, 0, SEEK_SET);
	read(file, number % 5 ? (void *)buffer : WRONG, number % room);
	pread(file, buffer, number % room, 10);
	fstat(file, &found);
	ftruncate(file, number % 10000);
	fallocate(file, 0, 0, number % 9000);
	posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
	other = fcntl(file, F_DUPFD_CLOEXEC, (long)(number % 2000));
	fcntl(file, F_GETOWN);
	futimens(file, NULL);
	fsync(file);
	close(other);
	close(file);
	close(-1);
	stat(path, &found);
	stat(WRONG, &found);
	open(WRONG, O_RDONLY);
	unlink(path);
}

static void folders(const char *path)
{
	struct entry copied[LARGEST_ENTRY / sizeof(struct entry) + 1], *found;
	struct folder *folder = opendir(path);
	long place;

	check(folder != NULL, "the folder cannot be read");
	place = telldir(folder);
	while (readdir(folder))
		close(openat(dirfd(folder), "nothing", O_RDONLY | O_NOFOLLOW));
	seekdir(folder, place);
	while (!readdir_r(folder, copied, &found) && found)
		;
	rewinddir(folder);
	check(readdir(folder) != NULL, "a folder has no first entry");
	closedir(folder);
	check(!opendir("/nowhere") && closedir(NULL) < 0, "a folder that is not there is opened");
}

/* Up to where a text is copied: with NUL as its last byte, and without one. */
static void long_paths(uint64_t number)
{
	size_t length = number % (LONGEST_PATH + 100);
	char *path = malloc(length + 1);

	memset(path, 'x', length);
	path[length] = 0;
	if (length > 300)
		path[number % 250 + 1] = number % 7 ? '/' : '.';
	access(path, R_OK);
	symlink(path, path);
	free(path);
}

static void *program(void *given)
{
	uint64_t number = *(uint64_t *)given;
	char path[40], other[40], buffer[40000];
	unsigned int i;

	memset(buffer, 'b', sizeof buffer);
	snprintf(path, sizeof path, "file-%llu", (unsigned long long)number);
	snprintf(other, sizeof other, "other-%llu", (unsigned long long)number);
	for (i = 0; i < most; i++) {
		next_number(&number);
		files(path, buffer, sizeof buffer, number);
		names(path, other, buffer, number % 100);
		long_paths(number);
		folders(".");
		check(self.ring != NULL, "a thread has no ring");
		read_ring(self.ring);
	}
	return NULL;
}

int main(int count, char **given)
{
	pthread_t threads[THREADS];
	unsigned int i;

	check(count == 4 && !stopping(SYS_chdir, WITH((long)given[1])), "FOLDER SEED COUNT");
	most = atoi(given[3]);
	share_memory();
	for (i = 0; i < THREADS; i++) {
		seeds[i] = (strtoull(given[2], NULL, 10) * THREADS + i + 1) * 0x9E3779B97F4A7C15ull | 1;
		check(!pthread_create(&threads[i], NULL, program, &seeds[i]), "no thread");
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	seeds[THREADS] = 1;
	program(&seeds[THREADS]);
	printf("%llu calls of %d threads were read\n", (unsigned long long)shared->order, THREADS + 1);
	return 0;
}
