SELECT t.anno, COUNT(*) AS primi_impianti
FROM dm.fact_impianti AS i
JOIN dm.dim_dispositivo AS d ON d.id_dispositivo = i.id_dispositivo
JOIN dm.dim_tempo AS t ON t.id_tempo = i.id_tempo_impianto
WHERE d.tipo_dispositivo IN ('PM', 'CRT-P')
  AND i.tipo_intervento = 'PRIMO'
  AND t.anno >= 2021
GROUP BY t.anno
ORDER BY t.anno;
