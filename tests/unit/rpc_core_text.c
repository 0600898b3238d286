/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_core_text.c -- what is left of gRPC's sentences about connections that were not made. */

#include "unit.h"
#include "core_text.h"
#include "text.h"

#define ADDRESSES "failed to connect to all addresses; last error: "
#define FOREIGN "another program listens there: it does not speak HTTP/2"

static void assert_plain(const char *core, const char *plain)
{
    struct sumac_error error = {.status = SUMAC_UNAVAILABLE};

    (void)text_print(error.text, sizeof error.text, "%s", core);
    core_text_make_plain(&error);
    assert_string_equal(error.text, plain);
    assert_int_equal(error.status, SUMAC_UNAVAILABLE);
}

TEST(a_connection_that_was_not_made_has_the_systems_cause_alone)
{
    assert_plain(
        ADDRESSES "UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused",
        "Connection refused");
    assert_plain(
        ADDRESSES "UNKNOWN: ipv6:%5B::1%5D:1: Failed to connect to remote host: Connection refused",
        "Connection refused");
    assert_plain(
        ADDRESSES "UNAVAILABLE: ipv4:127.0.0.1:1: recvmsg:Connection reset by peer",
        "Connection reset by peer");
}

TEST(another_program_at_the_address_is_called_one)
{
    assert_plain(
        ADDRESSES "INTERNAL: ipv4:127.0.0.1:1: Trying to connect an http1.x server", FOREIGN);
    assert_plain(ADDRESSES "INTERNAL: ipv4:127.0.0.1:1: Failed parsing HTTP/2", FOREIGN);
    assert_plain(
        ADDRESSES "UNAVAILABLE: ipv4:127.0.0.1:1: connection attempt timed out before receiving "
                  "SETTINGS frame",
        "connected, but it does not speak");
    assert_plain(
        ADDRESSES "UNKNOWN: ipv4:127.0.0.1:1: tcp handshaker shutdown",
        "connected, but it does not speak");
}

TEST(a_caller_without_memory_is_told_that_it_is_the_one)
{
    assert_plain(
        ADDRESSES "UNKNOWN: ipv4:127.0.0.1:1: Cannot allocate memory",
        "this process gets no memory: raise its limit (ulimit -v)");
}

TEST(a_connection_that_broke_says_why)
{
    assert_plain("recvmsg:Connection timed out", "Connection timed out");
    assert_plain("keepalive watchdog timeout", "it answered no ping");
}

TEST(an_unresolved_host_is_named_without_its_port)
{
    assert_plain(
        "DNS resolution failed for h0:2222: UNKNOWN: Temporary failure in name resolution",
        "DNS did not answer for h0, and /etc/hosts does not have it");
    assert_plain(
        "DNS resolution failed for h0:2222: UNKNOWN: Name or service not known",
        "no host is known by the name h0 (Name or service not known)");
}

TEST(a_ps_own_words_stay)
{
    static const char *const texts[] = {
        "the run is over", "Socket closed", "a: b: c", "its last error: none", "SETTINGS frame"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_plain(texts[i], texts[i]);
}
