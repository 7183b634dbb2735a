# serve's tests run a whole server in the process; its parts stand in tests/support.
target_sources(serve_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/both_interfaces.cc
                                  ${CMAKE_SOURCE_DIR}/tests/support/fake_backend.cc
                                  ${CMAKE_SOURCE_DIR}/tests/support/test_server.cc)
target_include_directories(serve_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_compile_definitions(serve_test PRIVATE SEPTET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
