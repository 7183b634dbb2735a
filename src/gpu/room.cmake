# The stored form of a simulated node is JSON; its files are YAML.
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
target_link_libraries(septet_gpu_edge PRIVATE nlohmann_json::nlohmann_json yaml-cpp
                                              ${CMAKE_DL_LIBS})
