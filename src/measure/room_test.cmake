# The load generator's tests run against simulated servers, that of gRPC made with gRPC C++; the image
# client's compare digests and make JPEG files.
find_package(OpenSSL REQUIRED)
pkg_check_modules(SEPTET_MEASURE_GRPC REQUIRED IMPORTED_TARGET grpc++)
target_sources(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/simulated_server.cc
                                    ${CMAKE_SOURCE_DIR}/tests/support/simulated_grpc_server.cc
                                    ${CMAKE_SOURCE_DIR}/tests/support/certificates.cc
                                    ${CMAKE_SOURCE_DIR}/tests/support/tls_front.cc)
target_include_directories(measure_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(measure_test PRIVATE OpenSSL::SSL OpenSSL::Crypto JPEG::JPEG ZLIB::ZLIB
                                           PkgConfig::SEPTET_MEASURE_GRPC)
target_compile_definitions(measure_test PRIVATE SEPTET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
