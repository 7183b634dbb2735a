# measure: the edge reads servers' JSON answers with nlohmann-json and pictures with libjpeg and stb.
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
target_link_libraries(septet_measure_edge PUBLIC nlohmann_json::nlohmann_json PRIVATE JPEG::JPEG)
