# measure: the edge reads servers' JSON answers with nlohmann-json, pictures with libjpeg and stb, and
# compressed traces with zlib.
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(ZLIB REQUIRED)
target_link_libraries(septet_measure_edge PUBLIC nlohmann_json::nlohmann_json
                                          PRIVATE JPEG::JPEG ZLIB::ZLIB)
