# beside -- how long a small pull waits while large pushes are applied. A worker of `sumac run`; bench/beside/beside starts it.
if(TARGET client)
  sumac_program(beside_worker SOURCES beside/worker.c USES client)
  configure_file(beside/beside ${CMAKE_CURRENT_BINARY_DIR}/beside.sh @ONLY)
endif()
