# measure: the edge reads servers' JSON answers with nlohmann-json, pictures with libjpeg and stb,
# compressed traces with zlib, and speaks gRPC through libnghttp2's frames.
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(SEPTET_NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
target_link_libraries(septet_measure_edge PUBLIC nlohmann_json::nlohmann_json
                                          PRIVATE JPEG::JPEG ZLIB::ZLIB PkgConfig::SEPTET_NGHTTP2)
