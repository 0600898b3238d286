# SPDX-License-Identifier: Apache-2.0
# meet -- a worker of rounds of rendezvous, which bench/meet/meet starts beside gloo's all_reduce.
sumac_program(meet_worker SOURCES meet/worker.c USES client)
