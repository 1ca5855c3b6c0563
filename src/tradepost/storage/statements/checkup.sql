-- name: settings (sqlite)
-- the settings that durability depends on; on PostgreSQL also its version, connections and clock
SELECT (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous);

-- name: settings (postgresql)
SELECT
    current_setting('server_version_num'), current_setting('server_version'),
    current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('max_connections'),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint);
