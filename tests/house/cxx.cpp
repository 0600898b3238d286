// cxx.cpp -- a C++ program that calls libsumac: the declarations have C's linkage, and zeroed options are what {} gives.
#include <cstdio>
#include <cstring>

#include "sumac/worker.h"

static bool refused_for_want_of(const char *what, sumac_status status, const sumac_error &error)
{
    if (status == SUMAC_INVALID_ARGUMENT && std::strstr(error.text, what) != nullptr)
        return true;
    std::printf("want of %s: %s: %s\n", what, sumac_status_name(status), error.text);
    return false;
}

int main()
{
    sumac_error error{};
    sumac_client *client = nullptr;
    sumac_worker *worker = nullptr;
    const sumac_client_options nowhere{};
    const sumac_worker_options nothing{};

    const bool opened =
        refused_for_want_of("cluster", sumac_client_open(&nowhere, &client, &error), error);
    const bool created =
        refused_for_want_of("client", sumac_worker_create(&nothing, &worker, &error), error);
    const bool named = std::strcmp(sumac_dtype_name(SUMAC_FLOAT32), "float32") == 0;
    return opened && created && named ? 0 : 1;
}
