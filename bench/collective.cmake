# SPDX-License-Identifier: Apache-2.0
# collective -- a worker of rounds of collectives, which bench/collective/collective starts beside gloo's all_reduce.
sumac_program(collective_worker SOURCES collective/worker.c USES client)
