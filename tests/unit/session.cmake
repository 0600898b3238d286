# SPDX-License-Identifier: Apache-2.0
# lib/session: its conversations, by what they are about.
foreach(name session_find session_push session_cancel session_collective session_again session_parts session_pull session_lag session_steps session_join session_leave session_lease session_calls session_limits session_refuses session_closed session_waits session_room session_read session_check session_asked session_stale session_several session_late session_silence)
  sumac_unit_test(${name} USES session session_check)
endforeach()
# Each take of memory fails once.
sumac_unit_test(session_short USES session session_check each_take)
