# The journal and checkpoints are JSON, mig-parted's configurations YAML; both stop at the edge.
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
target_link_libraries(septet_partition_edge PUBLIC nlohmann_json::nlohmann_json PRIVATE yaml-cpp)
