find_package(nlohmann_json REQUIRED)
target_link_libraries(septet_balance PUBLIC nlohmann_json::nlohmann_json)

# HTTP/2, of which edge/http2_codec.cc alone knows.
pkg_check_modules(SEPTET_NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
target_link_libraries(septet_balance_edge PUBLIC PkgConfig::SEPTET_NGHTTP2)
