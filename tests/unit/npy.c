/* npy.c -- tensors as .npy files: the bytes of the format, and what happens when they cannot be
 * written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "npy.h"

#define FILE_BYTES_MAX 4096

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

static void a_matrix_is_a_header_of_64_bytes_times_n_and_its_elements(void **state)
{
    const struct folder *folder = *state;
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

static void a_scalar_a_vector_and_eight_axes_have_pythons_tuples(void **state)
{
    const struct folder *folder = *state;
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

static void bfloat16_is_written_as_its_bits(void **state)
{
    const struct folder *folder = *state;
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

static void a_new_file_has_the_permissions_of_the_process(void **state)
{
    const struct folder *folder = *state;
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

static void a_link_stays_and_what_it_leads_to_is_replaced(void **state)
{
    const struct folder *folder = *state;
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

static void a_full_disk_is_told_with_the_path_and_the_reason(void **state)
{
    (void)state;
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save("/dev/full", &tensor, &error), SUMAC_RESOURCE_EXHAUSTED);

    assert_non_null(strstr(error.text, "/dev/full"));
    assert_non_null(strstr(error.text, "No space left on device"));
    sumac_buffer_unref(tensor.buffer);
}

/* The bytes may still be in the stream's buffer when the call that wrote them returns. */
static void a_full_disk_is_told_before_the_callers_stream_is_closed(void **state)
{
    (void)state;
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    FILE *file = fopen("/dev/full", "wb");
    assert_non_null(file);

    assert_int_equal(npy_write(file, "w", &tensor, NULL), SUMAC_RESOURCE_EXHAUSTED);

    fclose(file);
    sumac_buffer_unref(tensor.buffer);
}

/* A limit on the size of files stands for the disk that fills up in the middle. */
static void a_file_that_cannot_be_finished_leaves_the_old_one_and_nothing_else(void **state)
{
    const struct folder *folder = *state;
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

static void a_folder_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save("/tmp/no/such/folder/w.npy", &tensor, &error), SUMAC_NOT_FOUND);

    assert_non_null(strstr(error.text, "/tmp/no/such/folder/w.npy: No such file or directory"));
    sumac_buffer_unref(tensor.buffer);
}

static void a_folder_that_may_not_be_written_to_is_permission_denied(void **state)
{
    const struct folder *folder = *state;
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

static void a_folder_instead_of_a_file_is_refused(void **state)
{
    const struct folder *folder = *state;
    const uint8_t value = 7;
    const struct sumac_tensor tensor =
        tensor_of(SUMAC_UINT8, (struct sumac_shape){.rank = 0}, &value);
    struct sumac_error error = {0};

    assert_int_equal(npy_save(folder->path, &tensor, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "Is a directory"));
    sumac_buffer_unref(tensor.buffer);
}

static void a_tensor_on_a_device_is_refused(void **state)
{
    const struct folder *folder = *state;
    float value = 1;
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor tensor = {0};
    const struct sumac_place place = {.kind = SUMAC_PLACE_CUDA, .device = 0};
    assert_int_equal(sumac_buffer_wrap(&value, 4, place, NULL, NULL, &buffer), SUMAC_OK);
    assert_int_equal(
        sumac_tensor_view(buffer, 0, SUMAC_FLOAT32, &(struct sumac_shape){.rank = 0}, &tensor),
        SUMAC_OK);

    assert_int_equal(npy_save(folder->file, &tensor, NULL), SUMAC_INVALID_ARGUMENT);

    assert_int_not_equal(access(folder->file, F_OK), 0);
    sumac_buffer_unref(buffer);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_matrix_is_a_header_of_64_bytes_times_n_and_its_elements),
        IN_A_FOLDER(a_scalar_a_vector_and_eight_axes_have_pythons_tuples),
        IN_A_FOLDER(bfloat16_is_written_as_its_bits),
        IN_A_FOLDER(a_new_file_has_the_permissions_of_the_process),
        IN_A_FOLDER(a_link_stays_and_what_it_leads_to_is_replaced),
        IN_A_FOLDER(a_full_disk_is_told_with_the_path_and_the_reason),
        IN_A_FOLDER(a_full_disk_is_told_before_the_callers_stream_is_closed),
        IN_A_FOLDER(a_file_that_cannot_be_finished_leaves_the_old_one_and_nothing_else),
        IN_A_FOLDER(a_folder_that_is_not_there_is_not_found),
        IN_A_FOLDER(a_folder_that_may_not_be_written_to_is_permission_denied),
        IN_A_FOLDER(a_folder_instead_of_a_file_is_refused),
        IN_A_FOLDER(a_tensor_on_a_device_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
