# measure: the edge reads servers' JSON answers with nlohmann-json.
find_package(nlohmann_json REQUIRED)
target_link_libraries(septet_measure_edge PUBLIC nlohmann_json::nlohmann_json)
