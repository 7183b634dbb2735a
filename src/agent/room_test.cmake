# What several rooms' tests share.
target_include_directories(agent_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
