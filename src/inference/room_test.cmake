# A test compares docs/triton_compatibility.md with the messages.
target_compile_definitions(inference_test PRIVATE SEPTET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
