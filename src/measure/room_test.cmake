# The load generator's tests run against a simulated server.
target_sources(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/simulated_server.cc)
target_include_directories(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
