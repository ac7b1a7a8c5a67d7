-- Changes nothing but the version: earlier programs know nothing of rollouts and holds, and would serve their clusters
-- something else. They refuse the file from now on.
SELECT 1;
