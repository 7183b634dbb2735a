# serve: ONNX Runtime is opened at run time (edge/onnx_runtime.h); building its backend takes the
# headers only, which scripts/setup puts into .deps. Without them everything else still builds.
find_package(nlohmann_json REQUIRED)
target_link_libraries(septet_serve_edge PUBLIC nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})

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
