# lib/session: its conversations, by what they are about.
foreach(name session_push)
  sumac_unit_test(${name} USES session)
endforeach()
