# measure: the edge reads servers' JSON answers with nlohmann-json, pictures with libjpeg and stb,
# compressed traces with zlib. The load generator speaks gRPC through libnghttp2's frames, the image
# client through libgrpc++, without generated stubs. OpenSSL encrypts the load.
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED)
pkg_check_modules(SEPTET_NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(SEPTET_MEASURE_GRPC REQUIRED IMPORTED_TARGET grpc++)
target_link_libraries(
  septet_measure_edge PUBLIC nlohmann_json::nlohmann_json
  PRIVATE OpenSSL::SSL OpenSSL::Crypto JPEG::JPEG ZLIB::ZLIB PkgConfig::SEPTET_NGHTTP2 PkgConfig::SEPTET_MEASURE_GRPC)
