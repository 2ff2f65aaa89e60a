// Runs sleeping jobs in spark-shell: a thread a job, each with a scheduler pool of its own.
// WORKLOAD names a file with a line a job: name, submission in ms, and for each stage the times in
// ms that its tasks sleep.

import java.nio.file.{Files, Paths}
import scala.collection.JavaConverters._
import org.apache.spark.HashPartitioner
import org.apache.spark.rdd.RDD

case class SleepingJob(name: String, submitMs: Long, stages: Array[Array[Long]])

object Sleeping extends Serializable {
  // Every task of the next stage gets a row: one without input would have no preferred location,
  // and Spark launches such tasks first.
  def stage(input: RDD[(Int, Int)], sleeps: Array[Long], width: Int): RDD[(Int, Int)] =
    input.mapPartitionsWithIndex { (index, rows) =>
      rows.foreach(_ => ())
      Thread.sleep(sleeps(index))
      (index % width until width by sleeps.length).iterator.map((_, index))
    }

  def rdd(sc: org.apache.spark.SparkContext, stages: Array[Array[Long]]): RDD[(Int, Int)] = {
    val widths = stages.tail.map(_.length) :+ 1
    val first = sc.parallelize(stages(0).indices.map((_, 0)), stages(0).length)
    stages.tail.zip(widths.tail).foldLeft(stage(first, stages(0), widths(0))) {
      case (parent, (sleeps, width)) =>
        stage(parent.partitionBy(new HashPartitioner(sleeps.length)), sleeps, width)
    }
  }

  def run(sc: org.apache.spark.SparkContext, jobs: Seq[SleepingJob]): Unit = {
    val rdds = jobs.map(job => rdd(sc, job.stages))
    val begin = System.currentTimeMillis + 500
    val threads = jobs.zip(rdds).map { case (job, last) =>
      new Thread(() => {
        sc.setLocalProperty("spark.scheduler.pool", job.name)
        sc.setJobDescription(job.name)
        Thread.sleep(math.max(0, begin + job.submitMs - System.currentTimeMillis))
        last.count()
      })
    }
    threads.foreach(_.start())
    threads.foreach(_.join())
  }
}

// classes are loaded and compiled before the first submission
val warmUp = (0 until 8).map { i =>
  SleepingJob("warm-up", i * 400L, Array.fill(3)(Array.fill(24)(20L + i)))
}
Sleeping.run(sc, warmUp)
System.gc()
Thread.sleep(1000)

val jobs = Files.readAllLines(Paths.get(System.getenv("WORKLOAD"))).asScala.toSeq.map { line =>
  val words = line.split(" ")
  SleepingJob(words(0), words(1).toLong, words.drop(2).map(_.split(",").map(_.toLong)))
}
Sleeping.run(sc, jobs)
sc.stop()
System.exit(0)
