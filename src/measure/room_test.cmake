# The load generator's tests run against a simulated server; the image client's compare digests
# and make JPEG files.
find_package(OpenSSL REQUIRED)
target_sources(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/simulated_server.cc)
target_include_directories(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(measure_test PRIVATE OpenSSL::Crypto JPEG::JPEG)
target_compile_definitions(measure_test PRIVATE SEPTET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
