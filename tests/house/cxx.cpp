/* SPDX-License-Identifier: Apache-2.0 */
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
    sumac_worker_options some{}; // README's way: a member that is not set has its default
    some.reduce = SUMAC_REDUCE_MEAN;
    some.step = [](sumac_replica *, void *, sumac_error *) { return SUMAC_OK; };

    const bool opened =
        refused_for_want_of("cluster", sumac_client_open(&nowhere, &client, &error), error);
    const bool created =
        refused_for_want_of("client", sumac_worker_create(&nothing, &worker, &error), error) &&
        refused_for_want_of("client", sumac_worker_create(&some, &worker, &error), error);
    double values[2][3] = {};
    const sumac_tensor tensor = sumac_tensor_over(values, SUMAC_FLOAT64, SUMAC_SHAPE(2, 3));
    static_assert(SUMAC_SHAPE(2, 3).rank == 2 && SUMAC_SCALAR.rank == 0, "a shape is a constant");
    const bool shaped = sumac_tensor_bytes(&tensor) == sizeof values;
    const bool named = std::strcmp(sumac_dtype_name(SUMAC_FLOAT32), "float32") == 0;
    const sumac_function plain = SUMAC_FUNCTION("adam");
    const sumac_function given = SUMAC_FUNCTION("sgd", {"learning_rate", 0.5}, {"clip_value", 1});
    const bool functions = plain.hyperparameters[0].name == nullptr &&
                           given.hyperparameters[1].value == 1 &&
                           given.hyperparameters[2].name == nullptr;
    return opened && created && shaped && named && functions ? 0 : 1;
}
