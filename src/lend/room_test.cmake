# The ledger's tests are driven by a fake world.
target_include_directories(lend_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
