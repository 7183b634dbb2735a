# septet.yaml is read with yaml-cpp.
find_package(yaml-cpp REQUIRED)
target_link_libraries(septet_agent_edge PUBLIC yaml-cpp)
