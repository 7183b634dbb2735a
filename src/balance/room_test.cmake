# gRPC is tested against gRPC C++ too.
pkg_check_modules(SEPTET_BALANCE_GRPC REQUIRED IMPORTED_TARGET grpc++)
target_sources(balance_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/simulated_grpc_server.cc)
target_link_libraries(balance_test PRIVATE septet_test_support septet_grpc_test_support
                                           PkgConfig::SEPTET_BALANCE_GRPC)
