# The ledger's file is SQLite; leases travel and are stored as JSON.
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(septet_lend_edge PUBLIC SQLite::SQLite3 nlohmann_json::nlohmann_json)
