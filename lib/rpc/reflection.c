/* SPDX-License-Identifier: Apache-2.0 */
/* reflection.c -- the standard reflection service, v1 and v1alpha: the same messages under two
 * names. */
#include "server.h"

#include <string.h>

#include "grpc/reflection/v1/reflection.pb-c.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest request_message;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_message;
typedef Grpc__Reflection__V1__ErrorResponse error_message;
typedef Grpc__Reflection__V1__FileDescriptorResponse files_message;
typedef Grpc__Reflection__V1__ListServiceResponse services_message;
typedef Grpc__Reflection__V1__ServiceResponse service_message;
typedef Grpc__Reflection__V1__ExtensionNumberResponse extensions_message;

#define IS(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define ANSWERS(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

/* One answer per request: the next one waits until this one is out. */
static void answer(struct rpc_call *call, const response_message *response)
{
    rpc_call_pause(call);
    rpc_call_send(call, &response->base, NULL, 0);
}

static void answer_error(
    struct rpc_call *call, response_message *response, enum sumac_status status, const char *text)
{
    error_message error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    error.error_code = (int32_t)status;
    error.error_message = (char *)(uintptr_t)text; /* packing only reads it */
    response->message_response_case = ANSWERS(ERROR_RESPONSE);
    response->error_response = &error;
    answer(call, response);
}

static void answer_file(struct rpc_call *call, response_message *response, int file)
{
    const struct schema *schema = call->server->poller->schema;
    int files[SCHEMA_FILES_MAX];
    wire_bytes serialized[SCHEMA_FILES_MAX];

    if (file < 0) {
        answer_error(
            call, response, SUMAC_NOT_FOUND,
            "no such file or symbol here; list_services has the names to begin with");
        return;
    }
    files_message found = GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    found.n_file_descriptor_proto = schema_closure(schema, file, files);
    found.file_descriptor_proto = serialized;
    for (size_t i = 0; i < found.n_file_descriptor_proto; i++) {
        const struct span bytes = schema_file(schema, files[i]);
        serialized[i] = (wire_bytes){.data = (uint8_t *)(uintptr_t)bytes.data, .len = bytes.bytes};
    }
    response->message_response_case = ANSWERS(FILE_DESCRIPTOR_RESPONSE);
    response->file_descriptor_response = &found;
    answer(call, response);
}

static void answer_services(struct rpc_call *call, response_message *response)
{
    const struct rpc_server *server = call->server;

    service_message services[SERVER_SERVICES_MAX];
    service_message *pointers[SERVER_SERVICES_MAX];
    for (unsigned i = 0; i < server->service_count; i++) {
        services[i] = (service_message)GRPC__REFLECTION__V1__SERVICE_RESPONSE__INIT;
        services[i].name = (char *)(uintptr_t)server->services[i]->name;
        pointers[i] = &services[i];
    }
    services_message list = GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    list.n_service = server->service_count;
    list.service = pointers;
    response->message_response_case = ANSWERS(LIST_SERVICES_RESPONSE);
    response->list_services_response = &list;
    answer(call, response);
}

/* proto/ declares no extensions: every message has none. */
static void
answer_extensions(struct rpc_call *call, response_message *response, const char *type_name)
{
    if (!schema_has_message(call->server->poller->schema, type_name)) {
        answer_error(call, response, SUMAC_NOT_FOUND, "no message of that name here");
        return;
    }
    extensions_message none = GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
    none.base_type_name = (char *)(uintptr_t)type_name;
    response->message_response_case = ANSWERS(ALL_EXTENSION_NUMBERS_RESPONSE);
    response->all_extension_numbers_response = &none;
    answer(call, response);
}

static void reflect(struct rpc_call *call, const struct wire_received *received)
{
    const struct schema *schema = call->server->poller->schema;

    request_message request = *(const request_message *)(const void *)received->message;
    response_message response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    response.valid_host = request.host;
    response.original_request = &request;
    switch ((int)request.message_request_case) {
    case IS(FILE_BY_FILENAME):
        answer_file(call, &response, schema_find_file(schema, request.file_by_filename));
        break;
    case IS(FILE_CONTAINING_SYMBOL):
        answer_file(call, &response, schema_find_symbol(schema, request.file_containing_symbol));
        break;
    case IS(FILE_CONTAINING_EXTENSION):
        answer_error(call, &response, SUMAC_NOT_FOUND, "no message here has extensions");
        break;
    case IS(ALL_EXTENSION_NUMBERS_OF_TYPE):
        answer_extensions(call, &response, request.all_extension_numbers_of_type);
        break;
    case IS(LIST_SERVICES):
        answer_services(call, &response);
        break;
    default:
        answer_error(
            call, &response, SUMAC_INVALID_ARGUMENT, "a reflection request must ask for something");
        break;
    }
}

enum sumac_status reflection_add(struct rpc_server *server, struct sumac_error *error)
{
    static const struct rpc_handler handler = {
        .message = reflect,
        .writable = rpc_call_resume,
        .calls_max = SERVER_OWN_CALLS_MAX,
        .message_bytes_max = SERVER_OWN_MESSAGE_BYTES_MAX};
    const wire_service *service = &grpc__reflection__v1__server_reflection__descriptor;

    server->alpha_reflection = *service;
    server->alpha_reflection.name = "grpc.reflection.v1alpha.ServerReflection";
    const enum sumac_status status = rpc_server_add(server, service, &handler, NULL, error);
    return status != SUMAC_OK
               ? status
               : rpc_server_add(server, &server->alpha_reflection, &handler, NULL, error);
}
