# inference: simdjson parses the JSON of infer bodies (v2_json.h says where it may be seen); protobuf
# reads config.pbtxt and carries the gRPC messages. The generated code stands in the build folder
# under the path of its .proto and is compiled without our warnings.
find_package(simdjson REQUIRED)
target_link_libraries(septet_inference PUBLIC simdjson::simdjson)

find_package(Protobuf REQUIRED)
set(SEPTET_PROTO_OUT ${CMAKE_BINARY_DIR}/generated)
set(SEPTET_PROTO_SOURCES "")
foreach(proto model_config grpc_service health)
  set(path inference/edge/proto/${proto})
  add_custom_command(
    OUTPUT ${SEPTET_PROTO_OUT}/${path}.pb.cc ${SEPTET_PROTO_OUT}/${path}.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${SEPTET_PROTO_OUT}
    COMMAND protobuf::protoc -I${CMAKE_SOURCE_DIR}/src --cpp_out=${SEPTET_PROTO_OUT}
            ${CMAKE_SOURCE_DIR}/src/${path}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}.proto
            ${CMAKE_SOURCE_DIR}/src/inference/edge/proto/model_config.proto
    VERBATIM)
  list(APPEND SEPTET_PROTO_SOURCES ${SEPTET_PROTO_OUT}/${path}.pb.cc)
endforeach()
add_library(septet_inference_proto STATIC ${SEPTET_PROTO_SOURCES})
target_include_directories(septet_inference_proto SYSTEM PUBLIC ${SEPTET_PROTO_OUT})
target_link_libraries(septet_inference_proto PUBLIC protobuf::libprotobuf Threads::Threads
                                             PRIVATE septet_sanitizer)
# OpenSSL is the TLS of whoever listens.
find_package(OpenSSL REQUIRED)
target_link_libraries(septet_inference_edge PUBLIC septet_inference_proto OpenSSL::SSL
                                                   OpenSSL::Crypto)
