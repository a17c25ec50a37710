SELECT model, coalesce(sum(json_extract(usage, '$.calls')), 0),
    coalesce(sum(json_extract(usage, '$.prompt_tokens')), 0),
    coalesce(sum(json_extract(usage, '$.completion_tokens')), 0),
    coalesce(sum(json_extract(usage, '$.cost')), 0.0) AS cost,
    coalesce(sum(json_type(usage, '$.cost') = 'null'), 0)  -- one that is missing is the default, 0
FROM (
    SELECT model, coalesce(json_extract(result, '$.reply.usage'), json_extract(result, '$.failure.usage')) AS usage
    FROM calls WHERE result IS NOT NULL
)
GROUP BY model ORDER BY cost DESC, model
