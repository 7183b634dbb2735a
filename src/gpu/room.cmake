# The stored form of a simulated node is JSON.
find_package(nlohmann_json REQUIRED)
target_link_libraries(septet_gpu_edge PRIVATE nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
