# inference: simdjson parses the JSON of infer bodies (v2_json.h says where it may be seen).
find_package(simdjson REQUIRED)
target_link_libraries(septet_inference PUBLIC simdjson::simdjson)
