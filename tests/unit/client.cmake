# SPDX-License-Identifier: Apache-2.0
# lib/client, as far as it needs no server.
sumac_unit_test(client USES client session_check)
sumac_unit_test(exit_code USES client)
sumac_unit_test(client_shards USES client session_check)
sumac_unit_test(client_selections USES client session_check)
sumac_unit_test(client_slices USES client session_check)
sumac_unit_test(client_catalogue USES client session_check)
sumac_unit_test(client_transfers USES client session_check)
sumac_unit_test(client_describe USES client session_check)
sumac_unit_test(client_ends USES client session_check)
target_link_options(unit_client_ends PRIVATE -Wl,--wrap=exit) # of a child
sumac_unit_test(client_waits USES client session_check)
sumac_unit_test(client_reports USES client session_check)
target_link_options(unit_client_reports PRIVATE -Wl,--wrap=clock_gettime -Wl,--wrap=rpc_wait) # no time is waited for
sumac_unit_test(client_define USES client session_check)
sumac_unit_test(client_barrier USES client session_check)
sumac_unit_test(client_collective USES client session_check)
sumac_unit_test(client_rounds USES client session_check)
sumac_unit_test(client_calls USES client session_check)
target_link_options(unit_client_calls PRIVATE -Wl,--wrap=malloc) # says that there is none left
sumac_unit_test(client_scarce USES client session_check)
target_link_options(unit_client_scarce PRIVATE -Wl,--wrap=calloc -Wl,--wrap=realloc) # say so, too
