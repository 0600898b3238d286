# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(expression USES expression)
sumac_unit_test(expression_arithmetic USES expression)
sumac_unit_test(expression_run USES expression)
sumac_unit_test(expression_rows USES expression update)
target_compile_definitions(
  unit_expression_rows PRIVATE EXPRESSIONS_PAGE="${PROJECT_SOURCE_DIR}/docs/EXPRESSIONS.md")
# What they compare with is computed here: with the source's roundings, too.
foreach(name expression_arithmetic expression_run)
  target_compile_options(unit_${name} PRIVATE -ffp-contract=off)
endforeach()
