# serve: ONNX Runtime is opened at run time (edge/onnx_runtime.h); building its backend takes the
# headers only, which scripts/setup puts into .deps. Without them everything else still builds.
find_package(nlohmann_json REQUIRED)

# gRPC's generated services stand with the other generated code, without our warnings.
pkg_check_modules(SEPTET_GRPC REQUIRED IMPORTED_TARGET grpc++)
find_program(SEPTET_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
set(SEPTET_PROTO_OUT ${CMAKE_BINARY_DIR}/generated)
set(grpc_sources "")
foreach(proto grpc_service health)
  set(path inference/edge/proto/${proto})
  add_custom_command(
    OUTPUT ${SEPTET_PROTO_OUT}/${path}.grpc.pb.cc ${SEPTET_PROTO_OUT}/${path}.grpc.pb.h
    COMMAND protobuf::protoc -I${CMAKE_SOURCE_DIR}/src --grpc_out=${SEPTET_PROTO_OUT}
            --plugin=protoc-gen-grpc=${SEPTET_GRPC_PLUGIN} ${CMAKE_SOURCE_DIR}/src/${path}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}.proto ${SEPTET_PROTO_OUT}/${path}.pb.h
    VERBATIM)
  list(APPEND grpc_sources ${SEPTET_PROTO_OUT}/${path}.grpc.pb.cc)
endforeach()
add_library(septet_serve_grpc STATIC ${grpc_sources})
target_link_libraries(septet_serve_grpc PUBLIC septet_inference_proto PkgConfig::SEPTET_GRPC
                                        PRIVATE septet_sanitizer)
target_link_libraries(septet_serve_edge PUBLIC septet_serve_grpc)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
target_link_libraries(septet_serve_edge PUBLIC nlohmann_json::nlohmann_json OpenSSL::SSL
                                               OpenSSL::Crypto ZLIB::ZLIB ${CMAKE_DL_LIBS})

find_path(SEPTET_ONNXRUNTIME_INCLUDE onnxruntime_cxx_api.h
          PATHS ${CMAKE_SOURCE_DIR}/.deps/onnxruntime/include ENV SEPTET_ONNXRUNTIME_INCLUDE
          PATH_SUFFIXES onnxruntime)
set(serve_dir ${CMAKE_SOURCE_DIR}/src/serve/edge)
get_target_property(serve_edge_sources septet_serve_edge SOURCES)
if(SEPTET_ONNXRUNTIME_INCLUDE)
  list(REMOVE_ITEM serve_edge_sources ${serve_dir}/onnx_session_missing.cc)
  target_include_directories(septet_serve_edge SYSTEM PRIVATE ${SEPTET_ONNXRUNTIME_INCLUDE})
else()
  message(WARNING "No headers of ONNX Runtime: septet serve will run no ONNX models. "
                  "Run scripts/setup, then configure again.")
  list(REMOVE_ITEM serve_edge_sources ${serve_dir}/onnx_session.cc)
endif()
set_target_properties(septet_serve_edge PROPERTIES SOURCES "${serve_edge_sources}")
set_source_files_properties(${serve_dir}/onnx_runtime.cc PROPERTIES COMPILE_DEFINITIONS
                            SEPTET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
