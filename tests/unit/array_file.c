/* SPDX-License-Identifier: Apache-2.0 */
/* array_file.c -- tensors as .npy and .npz files: the bytes of the formats, and what happens when
 * they cannot be written. */
#include <stdbool.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "array_file.h"
#include "npy.h"

#define FILE_BYTES_MAX 4096

/* The linker calls this write(2), which may take fewer bytes than it was given. */
static size_t written_at_once = SIZE_MAX;

ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);

ssize_t __wrap_write(int file, const void *bytes, size_t count)
{
    return __real_write(file, bytes, count < written_at_once ? count : written_at_once);
}

struct folder {
    char path[64];
    char file[96];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);

    if (folder == NULL)
        return -1;
    strcpy(folder->path, "/tmp/sumac-npy-XXXXXX");
    if (mkdtemp(folder->path) == NULL)
        return -1;
    snprintf(folder->file, sizeof folder->file, "%s/w.npy", folder->path);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;

    unlink(folder->file);
    const int removed = rmdir(folder->path); /* fails if a temporary file was left behind */
    free(folder);
    return removed;
}

static struct sumac_tensor
tensor_of(enum sumac_dtype dtype, struct sumac_shape shape, const void *data)
{
    uint64_t elements = 0, bytes = 0;
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor tensor = {0};

    assert_int_equal(sumac_shape_size(&shape, dtype, &elements, &bytes), SUMAC_OK);
    assert_int_equal(sumac_buffer_create(bytes, &buffer), SUMAC_OK);
    if (bytes > 0)
        memcpy(sumac_buffer_data(buffer), data, (size_t)bytes);
    assert_int_equal(sumac_tensor_view(buffer, 0, dtype, &shape, &tensor), SUMAC_OK);
    return tensor;
}

/* The whole way of one tensor into a file. */
static enum sumac_status
npy_save(const char *path, const struct sumac_tensor *tensor, struct sumac_error *error)
{
    const struct array_entry entry = {.name = "w", .dtype = tensor->dtype, .shape = tensor->shape};
    struct array_file *file = NULL;
    const enum sumac_status status = array_file_open(path, false, &entry, 1, &file, error);

    if (status != SUMAC_OK)
        return status;
    if (sumac_tensor_bytes(tensor) > 0)
        memcpy(
            array_file_values(file, 0), sumac_tensor_data(tensor),
            (size_t)sumac_tensor_bytes(tensor));
    return array_file_keep(file, error);
}

static size_t read_file(const char *path, char content[FILE_BYTES_MAX])
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    const size_t bytes = fread(content, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return bytes;
}

static void assert_header(const char *content, const char *dictionary)
{
    assert_memory_equal(content, "\x93NUMPY\x01\x00", 8);
    const size_t bytes = (size_t)(uint8_t)content[8] | (size_t)(uint8_t)content[9] << 8;
    assert_int_equal((10 + bytes) % 64, 0);
    assert_int_equal(content[10 + bytes - 1], '\n');
    assert_memory_equal(content + 10, dictionary, strlen(dictionary));
    for (size_t i = 10 + strlen(dictionary); i < 10 + bytes - 1; i++)
        assert_int_equal(content[i], ' ');
}

TEST(a_header_of_more_than_255_bytes_says_so_in_two)
{
    struct sumac_shape shape = {.rank = SUMAC_RANK_MAX};
    char header[NPY_HEADER_BYTES_MAX];

    for (uint32_t axis = 0; axis < shape.rank; axis++)
        shape.extent[axis] = UINT64_MAX;

    size_t longest = 0;
    for (uint64_t offset = 0; offset < 64; offset++) {
        const size_t bytes = npy_header(SUMAC_FLOAT32, &shape, offset, header);
        assert_int_equal((offset + bytes) % 64, 0);
        assert_int_equal((uint8_t)header[8] + 256 * (uint8_t)header[9], bytes - 10);
        assert_int_equal(header[bytes - 1], '\n');
        longest = bytes > longest ? bytes : longest;
    }
    assert_true(longest - 10 > 255);
}

#define FOLDER_TEST(name) FIXTURE_TEST(name, struct folder *folder, make_folder, remove_folder)

FOLDER_TEST(a_matrix_is_a_header_of_64_bytes_times_n_and_its_elements)
{
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_FLOAT32, (struct sumac_shape){.extent = {2, 3}, .rank = 2}, values);

    assert_int_equal(npy_save(folder->file, &tensor, NULL), SUMAC_OK);

    char content[FILE_BYTES_MAX];
    assert_int_equal(read_file(folder->file, content), 128 + sizeof values);
    assert_header(content, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    assert_memory_equal(content + 128, values, sizeof values);
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_scalar_a_vector_and_eight_axes_have_pythons_tuples)
{
    const uint8_t value = 7;
    const struct sumac_shape most = {
        .extent = {0, 2000000000, 2000000000, 1, 1, 1, 1, 1}, .rank = 8};

    const struct {
        enum sumac_dtype dtype;
        struct sumac_shape shape;
        const char *dictionary;
    } cases[] = {
        {SUMAC_BOOL, {.rank = 0}, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"},
        {SUMAC_UINT8,
         {.extent = {1}, .rank = 1},
         "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"},
        {SUMAC_INT8, most,
         "{'descr': '|i1', 'fortran_order': False, "
         "'shape': (0, 2000000000, 2000000000, 1, 1, 1, 1, 1), }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sumac_tensor tensor = tensor_of(cases[i].dtype, cases[i].shape, &value);

        assert_int_equal(npy_save(folder->file, &tensor, NULL), SUMAC_OK);

        char content[FILE_BYTES_MAX];
        read_file(folder->file, content);
        assert_header(content, cases[i].dictionary);
        sumac_buffer_unref(tensor.buffer);
    }
}

FOLDER_TEST(bfloat16_is_written_as_its_bits)
{
    const uint16_t bits[2] = {0x3f80, 0xc000};
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_BFLOAT16, (struct sumac_shape){.extent = {2}, .rank = 1}, bits);

    assert_int_equal(npy_save(folder->file, &tensor, NULL), SUMAC_OK);

    char content[FILE_BYTES_MAX];
    const size_t bytes = read_file(folder->file, content);
    assert_header(content, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }");
    assert_memory_equal(content + bytes - sizeof bits, bits, sizeof bits);
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_new_file_has_the_permissions_of_the_process)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    const mode_t mask = umask(026);

    assert_int_equal(npy_save(folder->file, &tensor, NULL), SUMAC_OK);

    umask(mask);
    struct stat there;
    assert_int_equal(stat(folder->file, &there), 0);
    assert_int_equal(there.st_mode & 0777, 0640);
    sumac_buffer_unref(tensor.buffer);
}

#define NOBODY 65534u
#define SOMEBODY 65533u

/* The file's owner, group and permissions after a value was saved in its place. */
static struct stat replace(const struct folder *folder, uid_t user, gid_t group)
{
    const bool other = user == NOBODY;
    const gid_t own = getegid();
    struct stat there = {0};

    fclose(fopen(folder->file, "wb"));
    if (chown(folder->file, user, group) != 0 || (other && setgroups(0, NULL) != 0))
        skip(); /* a container may have no such users */
    assert_int_equal(chmod(folder->file, 0640), 0);
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    if (other) { /* who saves is in no group of the superuser's */
        assert_int_equal(chown(folder->path, NOBODY, NOBODY), 0);
        assert_int_equal(setegid(NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    const enum sumac_status status = npy_save(folder->file, &tensor, NULL);
    if (other) {
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(setegid(own), 0);
        assert_int_equal(setgroups(1, &own), 0);
    }

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(stat(folder->file, &there), 0);
    sumac_buffer_unref(tensor.buffer);
    return there;
}

FOLDER_TEST(a_file_that_is_replaced_stays_its_owners_and_its_groups)
{
    if (geteuid() != 0)
        skip(); /* only the superuser may give files away */

    const struct stat there = replace(folder, SOMEBODY, SOMEBODY);

    assert_int_equal(there.st_uid, SOMEBODY);
    assert_int_equal(there.st_gid, SOMEBODY);
    assert_int_equal(there.st_mode & 07777, 0640);
}

/* Else whoever is in the group of the one that saves could read what only another group could. */
FOLDER_TEST(what_another_group_could_do_with_a_file_the_savers_group_can_not)
{
    if (geteuid() != 0)
        skip();

    const struct stat there = replace(folder, NOBODY, 0);

    assert_int_equal(there.st_gid, NOBODY);
    assert_int_equal(there.st_mode & 07777, 0600);
}

FOLDER_TEST(a_link_stays_and_what_it_leads_to_is_replaced)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    char link[96];

    snprintf(link, sizeof link, "%s/link", folder->path);
    fclose(fopen(folder->file, "wb"));
    assert_int_equal(symlink(folder->file, link), 0);

    assert_int_equal(npy_save(link, &tensor, NULL), SUMAC_OK);

    struct stat there;
    assert_int_equal(lstat(link, &there), 0);
    assert_true(S_ISLNK(there.st_mode));
    char content[FILE_BYTES_MAX];
    assert_int_equal(read_file(folder->file, content), 129);
    unlink(link);
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_slow_pipe_gets_every_byte_in_order)
{
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_FLOAT32, (struct sumac_shape){.extent = {6}, .rank = 1}, values);
    char content[FILE_BYTES_MAX];

    assert_int_equal(mkfifo(folder->file, 0600), 0);
    const int pipe = open(folder->file, O_RDWR);
    written_at_once = 100;
    const enum sumac_status status = npy_save(folder->file, &tensor, NULL);
    written_at_once = SIZE_MAX;

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(read(pipe, content, sizeof content), 128 + sizeof values);
    assert_memory_equal(content + 128, values, sizeof values);
    close(pipe);
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_full_disk_is_told_with_the_path_and_the_reason)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save("/dev/full", &tensor, &error), SUMAC_RESOURCE_EXHAUSTED);

    assert_non_null(strstr(error.text, "/dev/full"));
    assert_non_null(strstr(error.text, "No space left on device"));
    sumac_buffer_unref(tensor.buffer);
}

/* Two entries: their sizes are in the 64-bit fields, and each begins at a multiple of 64. */
FOLDER_TEST(an_archive_has_each_array_and_a_directory)
{
    const struct array_entry entries[2] = {
        {.name = "layer/a", .dtype = SUMAC_FLOAT32, .shape = {.extent = {2}, .rank = 1}},
        {.name = "b", .dtype = SUMAC_UINT8, .shape = {.extent = {3}, .rank = 1}}};
    struct array_file *file = NULL;

    assert_int_equal(array_file_open(folder->file, true, entries, 2, &file, NULL), SUMAC_OK);
    uint8_t *values = array_file_values(file, 0);
    memcpy(values, "abcdefgh", 8);
    memcpy(array_file_values(file, 1), "xyz", 3);
    assert_int_equal(array_file_keep(file, NULL), SUMAC_OK);

    char content[FILE_BYTES_MAX];
    const size_t bytes = read_file(folder->file, content);
    assert_memory_equal(content, "PK\x03\x04", 4);
    assert_memory_equal(content + 30, "layer/a.npy", 11);
    assert_memory_equal(content + 30 + 11 + 20, "\x93NUMPY", 6);
    /* 61 bytes before the first header, which ends at the next multiple of 64 */
    const size_t at = 192;
    assert_memory_equal(content + at, "abcdefgh", 8);
    assert_memory_equal(content + at + 8, "PK\x03\x04", 4);
    assert_memory_equal(content + bytes - 22, "PK\x05\x06", 4);
    assert_memory_equal(content + bytes - 42, "PK\x06\x07", 4);
    assert_memory_equal(content + bytes - 98, "PK\x06\x06", 4);
}

/* Where a reader that begins at the end finds each entry: little-endian 64-bit fields. */
static uint64_t field(const char *content, size_t at)
{
    uint64_t value;

    memcpy(&value, content + at, sizeof value);
    return value;
}

FOLDER_TEST(a_directory_leads_to_each_entry)
{
    const struct array_entry entries[2] = {
        {.name = "a", .dtype = SUMAC_UINT8, .shape = {.extent = {2}, .rank = 1}},
        {.name = "b", .dtype = SUMAC_UINT8, .shape = {.extent = {3}, .rank = 1}}};
    struct array_file *file = NULL;
    char content[FILE_BYTES_MAX];

    assert_int_equal(array_file_open(folder->file, true, entries, 2, &file, NULL), SUMAC_OK);
    assert_int_equal(array_file_keep(file, NULL), SUMAC_OK);
    const size_t end_at = read_file(folder->file, content) - 98;

    assert_int_equal(field(content, end_at + 98 - 42 + 8), end_at);
    assert_int_equal(field(content, end_at + 24), 2); /* entries */
    size_t at = field(content, end_at + 48);
    assert_int_equal(field(content, end_at + 40), end_at - at);
    for (int i = 0; i < 2; i++) {
        const uint64_t local = field(content, at + 46 + 5 + 20);
        assert_memory_equal(content + at, "PK\x01\x02", 4);
        assert_memory_equal(content + at + 46, i == 0 ? "a.npy" : "b.npy", 5);
        assert_memory_equal(content + local, "PK\x03\x04", 4);
        assert_memory_equal(content + local + 30, i == 0 ? "a.npy" : "b.npy", 5);
        at += 46 + 5 + 28;
    }
    assert_int_equal(at, end_at);
}

/* A ps may list any size. */
FOLDER_TEST(sizes_that_are_2_to_the_64th_together_are_too_large)
{
    struct array_entry entries[5];
    struct array_file *file = NULL;
    struct sumac_error error = {0};

    for (size_t i = 0; i < 4; i++)
        entries[i] = (struct array_entry){
            .name = "v",
            .dtype = SUMAC_FLOAT32,
            .shape = {.extent = {UINT64_C(1) << 60}, .rank = 1}};
    entries[4] = (struct array_entry){.name = "w", .dtype = SUMAC_UINT8};

    assert_int_equal(
        array_file_open(folder->file, true, entries, 5, &file, &error), SUMAC_RESOURCE_EXHAUSTED);

    assert_null(file);
    assert_non_null(strstr(error.text, "File too large"));
}

/* One that a process with the same number has left, killed, is left alone. */
FOLDER_TEST(another_file_of_the_same_number_is_not_taken)
{
    const struct array_entry entry = {.name = "w", .dtype = SUMAC_UINT8};
    struct array_file *file = NULL;
    struct sumac_error error = {0};
    char left[160];

    snprintf(left, sizeof left, "%s.%ld-0.tmp", folder->file, (long)getpid());
    fclose(fopen(left, "wb"));
    const enum sumac_status status = array_file_open(folder->file, false, &entry, 1, &file, &error);
    array_file_drop(file);

    assert_int_equal(unlink(left), 0);
    assert_int_equal(status, SUMAC_OK);
}

FOLDER_TEST(a_signal_that_is_ignored_stays_so)
{
    const struct array_entry entry = {.name = "w", .dtype = SUMAC_UINT8};
    struct array_file *file = NULL;
    struct sigaction now;

    signal(SIGHUP, SIG_IGN);
    assert_int_equal(array_file_open(folder->file, false, &entry, 1, &file, NULL), SUMAC_OK);
    assert_int_equal(sigaction(SIGHUP, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    array_file_drop(file);
    assert_int_equal(sigaction(SIGHUP, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGHUP, SIG_DFL);
}

FOLDER_TEST(a_file_that_is_dropped_was_never_there)
{
    const struct array_entry entry = {.name = "w", .dtype = SUMAC_UINT8};
    struct array_file *file = NULL;
    FILE *old = fopen(folder->file, "wb");

    fputs("old", old);
    fclose(old);
    assert_int_equal(array_file_open(folder->file, false, &entry, 1, &file, NULL), SUMAC_OK);

    char beside[160], content[FILE_BYTES_MAX];
    snprintf(beside, sizeof beside, "%s.%ld-0.tmp", folder->file, (long)getpid());
    assert_int_equal(access(beside, F_OK), 0);

    array_file_drop(file);

    assert_int_equal(read_file(folder->file, content), 3);
}

FOLDER_TEST(a_file_that_cannot_take_its_name_is_removed)
{
    const struct array_entry entry = {.name = "w", .dtype = SUMAC_UINT8};
    struct array_file *file = NULL;
    struct sumac_error error = {0};

    assert_int_equal(array_file_open(folder->file, false, &entry, 1, &file, NULL), SUMAC_OK);
    assert_int_equal(mkdir(folder->file, 0700), 0);

    assert_int_equal(array_file_keep(file, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "cannot replace "));
    assert_int_equal(rmdir(folder->file), 0);
}

/* No disk has it: that is known before a value is read. */
FOLDER_TEST(what_no_disk_has_is_told_at_once)
{
    const struct array_entry entry = {
        .name = "w", .dtype = SUMAC_FLOAT64, .shape = {.extent = {UINT64_C(1) << 50}, .rank = 1}};
    struct array_file *file = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        array_file_open(folder->file, false, &entry, 1, &file, &error), SUMAC_RESOURCE_EXHAUSTED);

    assert_non_null(strstr(error.text, folder->file));
    assert_int_not_equal(access(folder->file, F_OK), 0);
}

/* A limit on the size of files stands for the disk that fills up in the middle. */
FOLDER_TEST(a_file_that_cannot_be_finished_leaves_the_old_one_and_nothing_else)
{
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_FLOAT32, (struct sumac_shape){.extent = {6}, .rank = 1}, values);
    FILE *old = fopen(folder->file, "wb");

    fputs("old", old);
    fclose(old);
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct sumac_error error = {0};

    const enum sumac_status status = npy_save(folder->file, &tensor, &error);

    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, folder->file));
    char content[FILE_BYTES_MAX];
    assert_int_equal(read_file(folder->file, content), 3);
    assert_memory_equal(content, "old", 3);
    sumac_buffer_unref(tensor.buffer);
}

/* ---- array_input */

/* Read a .npy file of this version: two elements are expected, and the file has `bytes`. */
static enum sumac_status read_version(uint8_t version, size_t bytes, struct sumac_tensor *tensor)
{
    static const char dictionary[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
    const size_t length = sizeof dictionary - 1;
    char content[FILE_BYTES_MAX] = "\x93NUMPY";
    size_t at = 6;

    content[at++] = (char)version;
    content[at++] = 0;
    content[at++] = (char)length;
    at += version == 1 ? 1 : 3; /* version 1 has two bytes of length, later ones four */
    memcpy(content + at, dictionary, length);
    memcpy(content + at + length, "abc", 3);
    FILE *file = fmemopen(content, at + length + bytes, "rb");
    const struct sumac_shape shape = {.extent = {2}, .rank = 1};
    const enum sumac_status status = array_input_read(file, "w", SUMAC_UINT8, &shape, tensor, NULL);
    fclose(file);
    return status;
}

TEST(every_npy_version_is_read)
{
    for (uint8_t version = 1; version <= 3; version++) {
        struct sumac_tensor tensor = {.buffer = NULL};
        assert_int_equal(read_version(version, 2, &tensor), SUMAC_OK);
        assert_memory_equal(sumac_tensor_data(&tensor), "ab", 2);
        sumac_buffer_unref(tensor.buffer);
    }
    struct sumac_tensor none = {.buffer = NULL};
    assert_int_equal(read_version(0, 2, &none), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(read_version(4, 2, &none), SUMAC_INVALID_ARGUMENT);
}

/* A dictionary may be followed by blanks, but not by any number of them. */
TEST(a_header_of_more_than_4096_bytes_is_refused)
{
    static char content[65536 + 10];
    const struct sumac_shape shape = {.rank = 1, .extent = {2}};
    struct sumac_tensor tensor = {.buffer = NULL};

    memset(content, ' ', sizeof content); /* given */
    memcpy(content, "\x93NUMPY\x01\x00\xff\xff", 10);
    FILE *const file = fmemopen(content, sizeof content, "r");
    assert_non_null(file);

    assert_int_equal(/* when, then */
                     array_input_read(file, "w", SUMAC_UINT8, &shape, &tensor, NULL),
                     SUMAC_INVALID_ARGUMENT);
    (void)fclose(file);
}

TEST(an_array_with_missing_or_trailing_bytes_is_refused)
{
    struct sumac_tensor tensor = {.buffer = NULL};

    assert_int_equal(read_version(1, 1, &tensor), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(read_version(1, 3, &tensor), SUMAC_INVALID_ARGUMENT);
    assert_null(tensor.buffer);
}

FOLDER_TEST(a_folder_that_is_not_there_is_not_found)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save("/tmp/no/such/folder/w.npy", &tensor, &error), SUMAC_NOT_FOUND);

    assert_non_null(strstr(error.text, "/tmp/no/such/folder/w.npy: No such file or directory"));
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_folder_that_may_not_be_written_to_is_permission_denied)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    chmod(folder->path, 0500);
    const uid_t user = geteuid();
    if (user == 0) /* the superuser may write everywhere: be nobody for a while */
        assert_int_equal(seteuid(65534), 0);

    const enum sumac_status status = npy_save(folder->file, &tensor, &error);

    if (user == 0)
        assert_int_equal(seteuid(user), 0);
    chmod(folder->path, 0700);
    assert_int_equal(status, SUMAC_PERMISSION_DENIED);
    assert_non_null(strstr(error.text, folder->file));
    assert_non_null(strstr(error.text, "Permission denied"));
    sumac_buffer_unref(tensor.buffer);
}

FOLDER_TEST(a_folder_instead_of_a_file_is_refused)
{
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save(folder->path, &tensor, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "Is a directory"));
    sumac_buffer_unref(tensor.buffer);
}
